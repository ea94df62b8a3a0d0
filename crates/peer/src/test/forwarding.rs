//! What two sides say on a connection for forwarding.

use super::pipe::{hand, opened, taken};
use super::*;
use replica::Moment;

#[test]
fn forwarded_commands_cost_a_place_and_their_data_and_no_more_than_was_granted() {
    let (mut a, mut b) = opened(Purpose::Forward);
    let command = ForwardedCommand {
        guest: Guest {
            volume: VolumeId(1),
            initiator: "iqn.x:h".to_owned(),
            isid: [0; 6],
            port: 1025,
        },
        read_only: false,
        order: ForwardedOrder::Simple,
        announced: 8,
        cdb: vec![0x2a; 10],
    };
    let frame = |request: u32, what: Forward, bytes: usize| Forwarded {
        request,
        what,
        data: Buf::copy_of(&contents(1, request.into(), bytes)),
    };
    let first = frame(1, Forward::Command(Box::new(command), 8), 4);
    assert_eq!(a.forward(&first), Err(NotSent::NoCredit));
    let granted = Cost {
        bytes: 8,
        records: 1,
    };
    b.grant(granted).unwrap();
    let credits = taken(&mut b);
    hand(&mut a, &credits);
    let rest = frame(1, Forward::Data, 4);
    for it in [&first, &rest] {
        a.forward(it).unwrap();
    }
    assert_eq!(a.forward(&first), Err(NotSent::NoCredit), "its place");
    let more = frame(1, Forward::Data, 1);
    assert_eq!(a.forward(&more), Err(NotSent::NoCredit), "its bytes");
    // Whoever asks for an end needs no room.
    a.forward(&frame(1, Forward::Abort, 0)).unwrap();
    let sent = taken(&mut a);
    let events = hand(&mut b, &sent);
    let abort = frame(1, Forward::Abort, 0);
    let wanted = [first, rest, abort].map(Event::Forward);
    assert_eq!(events, wanted);
    assert!(b.outstanding().is_nothing());
    // Nothing else has a place there, and it has none elsewhere.
    assert_eq!(a.answer(Moment(1)), Err(NotSent::NotHere));
    let (mut control, _) = opened(Purpose::Control);
    let refused = control.forward(&frame(1, Forward::Abort, 0));
    assert_eq!(refused, Err(NotSent::NotHere));
}
