"""Units and meanings of the inputs that no catalogue schema declares, and which of a chip's numbers stand first."""

MAIN_HARDWARE = (
    "sustained_fraction",
    "hbm_byte",
    "hbm_byte_per_s",
    "matmul_latency_s",
    "scale_up_ranks",
    "scale_up_one_way_byte_per_s",
    "scale_out_one_way_byte_per_s",
    "tdp_w",
    "release_price_usd",
)
FAMILY = {  # rule of a model family: (unit, meaning)
    "dataset_token_per_parameter": ("token", "training tokens for each parameter"),
    "depth_coefficient": ("1", "layers = coefficient x (d_model x d_ff) ^ exponent"),
    "depth_exponent": ("1", "how depth grows with width"),
    "ff_ratio": ("1", "d_ff / d_model"),
    "expert_coefficient": ("1", "experts at the reference width; 0 = dense"),
    "expert_reference_weights": ("1", "d_model x d_ff of the reference width"),
    "sequence_token": ("token", "length of one training sequence"),
    "batch_reference_token": ("token", "batch at the reference compute"),
    "batch_reference_flop": ("FLOP", "reference compute of the batch rule"),
    "batch_exponent": ("1", "how the batch grows with compute"),
    "batch_coefficient_token": ("token", "batch = coefficient x compute ^ exponent, for rule compute_power_law"),
    "width_minimum": ("1", "narrowest d_model of the sweep"),
    "width_maximum": ("1", "widest d_model of the sweep"),
}
RUN = {
    "limit_s": ("s", "time within which the run must end (7.885e6 s is three months)"),
    "accelerator_count": ("1", "accelerators of the run; empty = the smallest cluster that ends in time"),
    "dataset_token": ("token", "tokens of the run; empty = the model's own, or its family's rule"),
    "global_batch_token": ("token", "tokens of one step; empty = the model's own, or its family's rule"),
    "sequence_token": ("token", "tokens of one sequence; empty = the model's own"),
    "training_flop_minimum": ("FLOP", "leave out smaller models of the family"),
    "training_flop_maximum": ("FLOP", "leave out larger models of the family"),
}
SITES = {
    "site_ranks": ("1", "accelerators in one site; more sites are added as the run grows; empty = one site"),
    "one_way_byte_per_s": ("B/s", "bandwidth between sites for each accelerator, one direction"),
    "distance_m": ("m", "length of fibre between sites; light adds 4.9 us a kilometre"),
    "latency_s": ("s", "time of the smallest message between sites, without the fibre"),
}
SITE_DEFAULTS = {"site_ranks": None, "one_way_byte_per_s": 3e9, "distance_m": 1e5, "latency_s": 2e-5}
