#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| members::fuzz::superblocks(bytes));
