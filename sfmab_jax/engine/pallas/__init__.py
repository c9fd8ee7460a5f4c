"""The fused engine: a tile of games plays a chunk of rounds in one kernel. Private to `engine`."""
