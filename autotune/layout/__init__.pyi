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
from .curve import CURVES as CURVES
from .digest import dimension_digest as dimension_digest, layouts_digest as layouts_digest
from .dimension import Dimension as Dimension
from .dimensions import DIMENSIONS as DIMENSIONS, layout_of as layout_of
from .image import Raster as Raster, Sampling as Sampling
from .layout import Layout as Layout
from .named_orders import orders_digest as orders_digest
from .order import (
    Order as Order,
    find_gaps as find_gaps,
    merge as merge,
    reorder as reorder,
    restore as restore,
)
from .shared_layout import SharedLayout as SharedLayout
from .storage import ELEMENTS as ELEMENTS, STORAGES as STORAGES
from .stored import (
    POINTER_BYTES as POINTER_BYTES,
    Bytes as Bytes,
    Stored as Stored,
    handle as handle,
    members as members,
    struct_of as struct_of,
)
from .trees import Links as Links
from .views import (
    ALIAS as ALIAS,
    COPIED as COPIED,
    SAME as SAME,
    convert_layout as convert_layout,
    relation as relation,
    tile_edge as tile_edge,
    view_refusal as view_refusal,
    view_room as view_room,
)
from .window import (
    Window as Window,
    constant_places as constant_places,
    cut as cut,
    limit_shape as limit_shape,
    steps as steps,
)
