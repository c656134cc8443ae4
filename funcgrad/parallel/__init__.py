from funcgrad.parallel.mapping import shard_map
