"""Arithmetic that stays right in float32; knows nothing of batches, chunks or devices.

What it tells compilers is in `hints`, and marked where it is used.

double_word       sums and products held in two floats
bits              exponents and integers read from the bits of a float
arms              operations on a vector over the arms: sum, pick, one-hot, leader
remainders        z - log(1 + z) and its like, without cancellation near zero
potential         what the solvers need of a potential: `Potential`, `Power`, `Stability`
root_finding      Newton's method for the normaliser, with and without a bracket
simplex           the normaliser lambda(theta) and psi(theta + lambda(theta))
stability         the mixability gap M and the stability term Psi, for any potential
stability_power   Psi for potentials that are powers
stability_series  Psi for a small loss of one arm, from a few moments
draw, threefry    an arm from its exact law; counter-based random words
inverse_erf       erf^-1, of which normal numbers are made
hints             marks for the code generator, and why they are needed
"""
