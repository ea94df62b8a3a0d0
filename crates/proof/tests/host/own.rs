//! Our own target over several portals.

use crate::bench::{San, Wish, lane, on, options, read, runtime, write};

#[test]
fn a_url_becomes_a_volume_over_every_path_and_keeps_its_data() {
    let san = San::start(Wish {
        portals: 2,
        units: 1,
        ..Wish::default()
    });
    let url = san.url(0);
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = options("first", 2);
        let volume = host::open(&core, &url, &options).await.unwrap();
        let lane = lane(&core, &volume).await;
        let data: Vec<u8> = (0..1_u32 << 20).map(|at| (at / 512 % 251) as u8).collect();
        write(&*lane, 8, &data).await.unwrap();
        assert!(read(&*lane, 8, 2048).await.unwrap() == data);
        let status = volume.status(&core).await.unwrap();
        println!("{status:#?}");
        volume.stop(&core).await;
    });
}
