#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scsi::fuzz::cdb(bytes));
