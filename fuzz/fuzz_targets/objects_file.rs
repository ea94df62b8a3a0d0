#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::fuzz::objects_file(bytes));
