from .tuning import Tuned as Tuned, tune as tune
