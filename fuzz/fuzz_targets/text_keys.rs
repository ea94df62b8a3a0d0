#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iscsi::fuzz::text_keys(bytes));
