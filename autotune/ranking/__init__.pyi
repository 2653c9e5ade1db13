from .estimate import static_ranking as static_ranking
