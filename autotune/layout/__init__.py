"""How arrays are stored: memories, axes, records, packing, order, groups, views, windows of one array."""

from autotune.layout import named_orders
from autotune.layout.arrays import SCALAR_TYPES, Data, Field, canonical, check_links, check_numbers
from autotune.layout.bit_packing import packing
from autotune.layout.digest import images_digest, layouts_digest
from autotune.layout.image import Raster, Sampling
from autotune.layout.layout import IMAGES, POINTER_BYTES, Bytes, Layout, Stored, check_value, handle, slack
from autotune.layout.named_orders import Links, orders_digest
from autotune.layout.order import Order, merged, reordered, restored
from autotune.layout.view import view_refusal, view_room
from autotune.layout.window import Window, constant_places, cut, shape_at_once, steps

__all__ = [
    "IMAGES",
    "POINTER_BYTES",
    "SCALAR_TYPES",
    "Bytes",
    "Data",
    "Field",
    "Layout",
    "Links",
    "Order",
    "Raster",
    "Sampling",
    "Stored",
    "Window",
    "canonical",
    "check_links",
    "check_numbers",
    "check_value",
    "constant_places",
    "cut",
    "handle",
    "images_digest",
    "layouts_digest",
    "merged",
    "named_orders",
    "orders_digest",
    "packing",
    "reordered",
    "restored",
    "shape_at_once",
    "slack",
    "steps",
    "view_refusal",
    "view_room",
]
