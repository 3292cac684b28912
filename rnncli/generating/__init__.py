"""From a suite to a pack: vectors made, written, resumed and checked."""
