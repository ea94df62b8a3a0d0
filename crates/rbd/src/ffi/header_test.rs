//! The prototypes beside the headers: one C file that declares each function again, with the types
//! that ours stand for, which a compiler refuses where they differ.

use super::prototypes::{
    ConfigOption, EXCLUSIVE, EXCLUSIVE_LOCK, FAST_DIFF, FEATURES, ImageInfo, PROTOTYPES,
    RawImageSpec, THICK, Watcher,
};
use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a type of ours is in C.
fn in_c(ours: &str) -> String {
    if let Some(pointed) = ours.strip_prefix("*mut ") {
        return format!("{} *", in_c(pointed));
    }
    if let Some(pointed) = ours.strip_prefix("*const ") {
        return format!("const {} *", in_c(pointed));
    }
    let known = match ours {
        "()" | "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "bool" => "bool",
        "u8" => "uint8_t",
        "u64" => "uint64_t",
        // What an enum of C is.
        "u32" => "rbd_lock_mode_t",
        "usize" => "size_t",
        "ssize_t" => "ssize_t",
        "iovec" => "struct iovec",
        "ClusterHandle" => "rados_t",
        "Pool" => "rados_ioctx_t",
        "RawImage" => "rbd_image_t",
        "Completion" => "rbd_completion_t",
        "Callback" => "rbd_callback_t",
        "Updated" => "rbd_update_callback_t",
        "Progress" => "librbd_progress_fn_t",
        "Differs" => "differs",
        "ImageInfo" => "rbd_image_info_t",
        "RawImageSpec" => "rbd_image_spec_t",
        "Watcher" => "rbd_image_watcher_t",
        "ConfigOption" => "rbd_config_option_t",
        other => panic!("{other} has no word in C"),
    };
    known.to_owned()
}

fn declarations() -> String {
    let mut c = "#include <rbd/librbd.h>\n#include <stddef.h>\n\
         typedef int (*differs)(uint64_t, size_t, int, void *);\n"
        .to_owned();
    for one in PROTOTYPES {
        let parameters: Vec<String> = one.parameters.iter().map(|it| in_c(it)).collect();
        let (result, name, parameters) = (in_c(one.result), one.name, parameters.join(", "));
        writeln!(c, "{result} {name}({parameters});").unwrap();
    }
    let mut equal = |c_value: &str, ours: u64| {
        writeln!(c, "_Static_assert({c_value} == {ours}, \"{c_value}\");").unwrap();
    };
    equal("sizeof(rbd_image_info_t)", size_of::<ImageInfo>() as u64);
    let order = offset_of!(ImageInfo, order) as u64;
    equal("offsetof(rbd_image_info_t, order)", order);
    let object = offset_of!(ImageInfo, object_size) as u64;
    equal("offsetof(rbd_image_info_t, obj_size)", object);
    equal("sizeof(rbd_image_spec_t)", size_of::<RawImageSpec>() as u64);
    let name = offset_of!(RawImageSpec, name) as u64;
    equal("offsetof(rbd_image_spec_t, name)", name);
    let size = size_of::<ConfigOption>() as u64;
    equal("sizeof(rbd_config_option_t)", size);
    let value = offset_of!(ConfigOption, value) as u64;
    equal("offsetof(rbd_config_option_t, value)", value);
    equal("sizeof(rbd_image_watcher_t)", size_of::<Watcher>() as u64);
    let client = offset_of!(Watcher, client) as u64;
    equal("offsetof(rbd_image_watcher_t, id)", client);
    equal("RBD_LOCK_MODE_EXCLUSIVE", EXCLUSIVE.into());
    let thick = u64::try_from(THICK).unwrap();
    equal("RBD_WRITE_ZEROES_FLAG_THICK_PROVISION", thick);
    equal("RBD_FEATURE_EXCLUSIVE_LOCK", EXCLUSIVE_LOCK);
    equal("RBD_FEATURE_FAST_DIFF", FAST_DIFF);
    equal("RBD_FEATURES_DEFAULT", FEATURES);
    c
}

/// What a C compiler says of this.
fn compiled(c: &str) -> Result<(), String> {
    let mut compiler = Command::new("cc")
        .args(["-fsyntax-only", "-Wno-deprecated-declarations", "-xc", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = compiler.stdin.take().unwrap();
    stdin.write_all(c.as_bytes()).unwrap();
    drop(stdin);
    let output = compiler.wait_with_output().unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn every_prototype_is_the_one_of_the_header() {
    if !Path::new("/usr/include/rbd/librbd.h").exists() {
        println!("skipped: librbd.h is not here (package librbd-dev)");
        return;
    }
    let c = declarations();
    if let Err(said) = compiled(&c) {
        panic!("{said}");
    }
    let wrong = c.replace("int rbd_close(rbd_image_t)", "int rbd_close(uint64_t)");
    assert_ne!(wrong, c);
    let said = compiled(&wrong).unwrap_err();
    assert!(said.contains("rbd_close"), "{said}");
}
