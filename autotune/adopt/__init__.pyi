from .process import AdoptRequest as AdoptRequest, adopt as adopt
