#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vhdx::fuzz::image(bytes));
