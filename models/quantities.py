"""The two array types of the cost model, and the one place where 64-bit arithmetic is switched on.

`Quantity` types the fields of the bundles in `point.py`: a bundle may hold one point or a whole batch.
`Scalar` types what every effect returns: seen from inside `vmap`, always one number.
"""

import jax
from jaxtyping import Array, Bool, Float, Int

jax.config.update("jax_enable_x64", True)

Quantity = Float[Array, "..."]
Scalar = Float[Array, ""]
Flag = Bool[Array, ""]
Index = Int[Array, ""]
