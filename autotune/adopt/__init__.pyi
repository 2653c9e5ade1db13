from .process import Asked as Asked, adopt as adopt
