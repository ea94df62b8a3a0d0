#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iscsi::fuzz::any_split(bytes));
