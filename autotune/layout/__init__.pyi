from . import named_orders as named_orders
from .arrays import (
    CPP_NAMES as CPP_NAMES,
    SCALAR_TYPES as SCALAR_TYPES,
    Data as Data,
    Field as Field,
    canonical as canonical,
    check_links as check_links,
    check_numbers as check_numbers,
)
from .bit_packing import packing as packing
from .choices import HEADERS as HEADERS, IMAGES as IMAGES, check_value as check_value
from .conversion import (
    ALIAS as ALIAS,
    CONVERTED_KINDS as CONVERTED_KINDS,
    COPIED as COPIED,
    SAME as SAME,
    SEEN as SEEN,
    converted as converted,
    relation as relation,
    tile_edge as tile_edge,
)
from .curve import CURVES as CURVES
from .digest import (
    fields_digest as fields_digest,
    images_digest as images_digest,
    layouts_digest as layouts_digest,
    links_digest as links_digest,
    mappings_digest as mappings_digest,
    storage_digest as storage_digest,
)
from .fields import (
    FIELDS_HEADER as FIELDS_HEADER,
    check_groups as check_groups,
    every_grouping as every_grouping,
    names_of as names_of,
)
from .gaps import find_gaps as find_gaps
from .image import IMAGE_HEADER as IMAGE_HEADER, Raster as Raster, Sampling as Sampling
from .layout import Layout as Layout
from .mapping import MAPPING_KINDS as MAPPING_KINDS, mapping_choice as mapping_choice
from .named_orders import orders_digest as orders_digest
from .order import Order as Order, merged as merged, reordered as reordered, restored as restored
from .storage import (
    ELEMENTS as ELEMENTS,
    STORAGES as STORAGES,
    Storage as Storage,
    allowed_storages as allowed_storages,
    storage_of as storage_of,
)
from .stored import POINTER_BYTES as POINTER_BYTES, Bytes as Bytes, Stored as Stored, handle as handle
from .stored_links import StoredLinks as StoredLinks, links_of as links_of
from .trees import Links as Links
from .view import view_refusal as view_refusal, view_room as view_room
from .window import (
    Window as Window,
    constant_places as constant_places,
    cut as cut,
    shape_at_once as shape_at_once,
    steps as steps,
)
