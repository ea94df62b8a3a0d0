//! Nodes that join at once, with a model of the arbiter.

mod races;
