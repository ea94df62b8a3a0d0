//! Nodes that join at once, with a model of the arbiter; nodes that meet, by real sockets.

mod bed;
mod leaving;
mod meeting;
mod races;
mod refusals;
mod renewal;
mod streams;
mod talk;
