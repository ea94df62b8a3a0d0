#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| manifest::fuzz::objects_file(bytes));
