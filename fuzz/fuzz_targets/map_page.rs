#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sums::fuzz::map_page(bytes));
