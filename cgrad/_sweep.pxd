# Reverse sweep. Uses the tape, the programs and Array; never the graph or the replay.
