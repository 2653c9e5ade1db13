from .results import (
    CompilationFailedConfig as CompilationFailedConfig,
    InvalidConfig as InvalidConfig,
    RuntimeFailedConfig as RuntimeFailedConfig,
    get_best_config as get_best_config,
    get_config_string as get_config_string,
    observer as observer,
    store_metadata_file as store_metadata_file,
    store_output_file as store_output_file,
    store_results as store_results,
)
from .tuning import run_kernel as run_kernel, tune_cache as tune_cache, tune_kernel as tune_kernel
