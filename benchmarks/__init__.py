"""Speed of sfmab_jax against named rivals, always as a ratio within one run."""
