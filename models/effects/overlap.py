"""What runs beside what: host and device, computation and transfers."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def host_bound_time_s(*, device_s: Quantity, host_s: Quantity) -> Scalar:
    """Return the time of kernels whose launches cost the host `host_s`: the larger one, smoothly.

    (a^4 + b^4)^(1/4).

    Valid when: launches are asynchronous. Source: PyTorch asynchronous execution; exponent assumed.
    """
    device_squared = device_s * device_s
    host_squared = host_s * host_s
    return jnp.sqrt(jnp.sqrt(device_squared * device_squared + host_squared * host_squared))


def overlapped_time_s(*, compute_s: Quantity, transfer_s: Quantity, exposed_fraction: Quantity) -> Scalar:
    """Return the time of computing beside a transfer: the larger, smoothly, plus an exposed share of the smaller.

    t = (c^4 + q^4)^(1/4) + x min(c, q). x stands for shared HBM and processors and imperfect prefetch.
    Source: form assumed, x fitted.
    """
    return host_bound_time_s(device_s=compute_s, host_s=transfer_s) + exposed_fraction * jnp.minimum(
        compute_s, transfer_s
    )


def partly_hidden_time_s(*, transfer_s: Quantity, cover_s: Quantity, exposed_fraction: Quantity) -> Scalar:
    """Return the exposed part of a transfer that may hide under `cover_s`: x q + max(0, (1 - x) q - cover).

    Source: bucketed gradient reduction (Li 2020, PyTorch DDP); x fitted.
    """
    return exposed_fraction * transfer_s + jnp.maximum(0, (1 - exposed_fraction) * transfer_s - cover_s)
