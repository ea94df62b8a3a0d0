#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checksums::fuzz::map_superblock(bytes));
