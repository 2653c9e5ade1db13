"""How arrays are stored: memories, axes, records, packing, order, groups, views, windows of one array."""

from autotune.layout import named_orders
from autotune.layout.arrays import SCALAR_TYPES, Data, Field, canonical, check_links, check_numbers
from autotune.layout.bit_packing import packing
from autotune.layout.choices import HEADERS, IMAGES, check_value
from autotune.layout.conversion import (
    ALIAS,
    CONVERTED_KINDS,
    COPIED,
    SAME,
    SEEN,
    converted,
    relation,
    tile_edge,
)
from autotune.layout.curve import KINDS as CURVES
from autotune.layout.digest import (
    fields_digest,
    images_digest,
    layouts_digest,
    links_digest,
    mappings_digest,
    storage_digest,
)
from autotune.layout.fields import HEADER as FIELDS_HEADER
from autotune.layout.fields import check_groups, every_grouping, names_of
from autotune.layout.image import HEADER as IMAGE_HEADER
from autotune.layout.image import Raster, Sampling
from autotune.layout.layout import Layout
from autotune.layout.mapping import KINDS as MAPPING_KINDS
from autotune.layout.mapping import mapping_choice
from autotune.layout.named_orders import orders_digest
from autotune.layout.order import Order, merged, reordered, restored
from autotune.layout.slack import slack
from autotune.layout.storage import ELEMENTS, STORAGES, Storage, allowed_storages, storage_of
from autotune.layout.stored import POINTER_BYTES, Bytes, Stored, handle
from autotune.layout.stored_links import StoredLinks, links_of
from autotune.layout.trees import Links
from autotune.layout.view import view_refusal, view_room
from autotune.layout.window import Window, constant_places, cut, shape_at_once, steps

__all__ = [
    "ALIAS",
    "CONVERTED_KINDS",
    "COPIED",
    "CURVES",
    "ELEMENTS",
    "FIELDS_HEADER",
    "HEADERS",
    "IMAGES",
    "IMAGE_HEADER",
    "MAPPING_KINDS",
    "POINTER_BYTES",
    "SAME",
    "SCALAR_TYPES",
    "SEEN",
    "STORAGES",
    "Bytes",
    "Data",
    "Field",
    "Layout",
    "Links",
    "Order",
    "Raster",
    "Sampling",
    "Storage",
    "Stored",
    "StoredLinks",
    "Window",
    "allowed_storages",
    "canonical",
    "check_groups",
    "check_links",
    "check_numbers",
    "check_value",
    "constant_places",
    "converted",
    "cut",
    "every_grouping",
    "fields_digest",
    "handle",
    "images_digest",
    "layouts_digest",
    "links_digest",
    "links_of",
    "mapping_choice",
    "mappings_digest",
    "merged",
    "named_orders",
    "names_of",
    "orders_digest",
    "packing",
    "relation",
    "reordered",
    "restored",
    "shape_at_once",
    "slack",
    "steps",
    "storage_digest",
    "storage_of",
    "tile_edge",
    "view_refusal",
    "view_room",
]
