//! Mail, against a server that speaks as much SMTP as it needs.

use super::{Heard, acceptor, certificate, receiver, try_to, until};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What `npass` with the password `s3cret` sends (RFC 4616), in capitals.
const KNOWN: &str = "AG5WYXNZAHMZY3JLDA==";

/// How the server behaves.
#[derive(Clone)]
struct Manner {
    tls: Option<TlsAcceptor>,
    /// TLS from the first byte.
    at_once: bool,
    /// What it answers to RCPT.
    recipient: &'static str,
}

/// Answers commands; `true`: TLS begins now.
async fn dialogue<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    heard: &Heard,
    manner: &Manner,
    is_safe: bool,
) -> bool {
    loop {
        let line = until(stream, b"\r\n").await;
        heard.lock().unwrap().extend(&line);
        let line = String::from_utf8_lossy(&line).to_uppercase();
        let answer = match line.split([' ', '\r']).next().unwrap_or_default() {
            "EHLO" if !is_safe && manner.tls.is_some() => "250-mx\r\n250 STARTTLS\r\n",
            "EHLO" => "250-mx\r\n250-8BITMIME\r\n250 AUTH PLAIN\r\n",
            "STARTTLS" => {
                stream.write_all(b"220 go\r\n").await.unwrap();
                return true;
            }
            "AUTH" if line.contains(KNOWN) => "235 welcome\r\n",
            "AUTH" => "535 5.7.8 who are you\r\n",
            "RCPT" => manner.recipient,
            "DATA" => {
                stream.write_all(b"354 go\r\n").await.unwrap();
                let mail = until(stream, b"\r\n.\r\n").await;
                heard.lock().unwrap().extend(mail);
                "250 taken\r\n"
            }
            "QUIT" | "" => return false,
            _ => "250 ok\r\n",
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return false;
        }
    }
}

async fn server(manner: Manner) -> (u16, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Heard::default();
    let shared = Heard::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let tls = manner.tls.clone().filter(|_| manner.at_once);
            if let Some(tls) = tls {
                let Ok(mut stream) = tls.accept(stream).await else {
                    continue;
                };
                stream.write_all(b"220 mx\r\n").await.unwrap();
                dialogue(&mut stream, &shared, &manner, true).await;
                continue;
            }
            stream.write_all(b"220 mx\r\n").await.unwrap();
            if dialogue(&mut stream, &shared, &manner, false).await
                && let Some(tls) = &manner.tls
                && let Ok(mut stream) = tls.accept(stream).await
            {
                dialogue(&mut stream, &shared, &manner, true).await;
            }
        }
    });
    (port, heard)
}

fn manner(own: &(String, String), at_once: bool) -> Manner {
    let tls = Some(acceptor(own));
    Manner {
        tls,
        at_once,
        recipient: "250 ok\r\n",
    }
}

fn mail(port: u16, change: &Value) -> alerts::Receiver {
    let mut mail = json!({
        "server": "localhost", "port": port, "from": "san@example.com", "to": ["a@example.com", "b@example.com"],
    });
    for (name, it) in change.as_object().unwrap() {
        mail[name] = it.clone();
    }
    receiver(&json!({ "mail": mail }))
}

fn text(heard: &Heard) -> String {
    String::from_utf8(heard.lock().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn a_mail_goes_to_each_address_after_starttls_and_the_password() {
    let own = certificate("localhost");
    for at_once in [false, true] {
        let (port, heard) = server(manner(&own, at_once)).await;
        let encryption = if at_once { "tls" } else { "starttls" };
        let receiver = mail(port, &json!({ "encryption": encryption, "ca": own.0 }));
        assert_eq!(try_to(&receiver).await, Ok(()));
        let text = text(&heard);
        assert_eq!(text.contains("STARTTLS"), !at_once);
        for wanted in [
            "EHLO san-a\r\n",
            "MAIL FROM:<san@example.com>",
            "RCPT TO:<a@example.com>",
            "RCPT TO:<b@example.com>",
            "To: a@example.com, b@example.com\r\n",
            "Subject: [san-a] critical: ",
            "Date: ",
            "\r\n.\r\n",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}

#[tokio::test]
async fn the_right_password_is_taken_and_a_wrong_one_is_said_to_be_so() {
    let own = certificate("localhost");
    let (port, heard) = server(manner(&own, false)).await;
    let with = |password: &str| {
        let user = json!({ "user": "npass", "password": password, "ca": own.0 });
        mail(port, &user)
    };
    assert_eq!(try_to(&with("s3cret")).await, Ok(()));
    assert!(text(&heard).contains("MAIL FROM"));
    heard.lock().unwrap().clear();
    let failure = try_to(&with("s3cret2")).await.unwrap_err();
    assert!(
        failure.0.contains("who are you") && !failure.0.contains("s3cret"),
        "{failure:?}"
    );
    assert!(!text(&heard).contains("MAIL FROM"));
}

#[tokio::test]
async fn no_mail_goes_without_the_encryption_that_was_asked_for() {
    let (port, heard) = server(Manner {
        tls: None,
        at_once: false,
        recipient: "250 ok\r\n",
    })
    .await;
    let failure = try_to(&mail(port, &json!({ "user": "u", "password": "s3cret" })))
        .await
        .unwrap_err();
    assert!(!failure.0.contains("s3cret"), "{failure:?}");
    assert!(!text(&heard).contains("MAIL FROM") && !text(&heard).contains("AUTH"));
    assert_eq!(
        try_to(&mail(port, &json!({ "encryption": "none" }))).await,
        Ok(()),
        "a relay of one's own"
    );
    let stranger = certificate("localhost");
    let (port, heard) = server(manner(&certificate("localhost"), false)).await;
    let failure = try_to(&mail(port, &json!({ "ca": stranger.0 })))
        .await
        .unwrap_err();
    assert!(failure.0.contains("certificate"), "{failure:?}");
    assert!(!text(&heard).contains("MAIL FROM"));
}

#[tokio::test]
async fn what_the_server_refuses_is_said_in_its_words() {
    let own = certificate("localhost");
    let refusing = Manner {
        recipient: "550 5.1.1 no such user\r\n",
        ..manner(&own, false)
    };
    let (port, _) = server(refusing).await;
    let failure = try_to(&mail(port, &json!({ "ca": own.0 })))
        .await
        .unwrap_err();
    assert!(
        failure.0.contains("no such user") && failure.0.contains(&port.to_string()),
        "{failure:?}"
    );
    assert!(
        try_to(&mail(port, &json!({ "server": "169.254.1.1" })))
            .await
            .unwrap_err()
            .0
            .contains("not connected to")
    );
}

#[tokio::test]
async fn words_that_others_chose_end_no_mail_and_begin_no_header() {
    let (port, heard) = server(Manner {
        tls: None,
        at_once: false,
        recipient: "250 ok\r\n",
    })
    .await;
    assert_eq!(
        try_to(&mail(port, &json!({ "encryption": "none" }))).await,
        Ok(())
    );
    let text = text(&heard);
    let (_, data) = text.split_once("DATA\r\n").unwrap();
    assert_eq!(data.matches("\r\n.\r\n").count(), 1, "{data}");
    assert!(!data.contains("\nBcc:"), "{data}");
    assert!(
        data.contains("Subject: ") && data.is_ascii(),
        "encoded as RFC 2047 and 2045 say: {data}"
    );
}
