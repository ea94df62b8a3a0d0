#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iscsi::fuzz::pdu_stream(bytes));
