from .process import adopt as adopt
