//! Ceph RBD images as volumes.

#![expect(
    dead_code,
    unused_imports,
    reason = "the volume over it is the next step"
)]

mod ffi;
