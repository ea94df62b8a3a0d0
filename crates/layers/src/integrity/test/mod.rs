//! The layer over disks that flip, misdirect, lose, tear and forget.

mod conforms;
mod cuts;
mod damage;
mod disk;
mod fills_up;
mod full;
mod unflushed;
