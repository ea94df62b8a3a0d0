//! Webhooks, against a server that reads HTTP by hand.

use super::{Heard, acceptor, certificate, receiver, try_to, until};
use alerts::Message;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// Reads one request and answers it.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: &str, heard: &Heard) {
    let mut all = until(&mut stream, b"\r\n\r\n").await;
    let head = String::from_utf8_lossy(&all).to_lowercase();
    let length = head
        .split("content-length: ")
        .nth(1)
        .and_then(|it| it.split("\r\n").next());
    let mut body = vec![0; length.map_or(0, |it| it.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    all.extend(body);
    *heard.lock().unwrap() = all;
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// A server that answers so, and its port; `tls`: with this certificate.
async fn server(answer: &'static str, tls: Option<&(String, String)>) -> (u16, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, acceptor) = (Heard::default(), tls.map(acceptor));
    let shared = Heard::clone(&heard);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            match &acceptor {
                None => serve(stream, answer, &shared).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, answer, &shared).await;
                    }
                }
            }
        }
    });
    (port, heard)
}

const TAKEN: &str = "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n";

fn text(heard: &Heard) -> String {
    String::from_utf8(heard.lock().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn a_message_is_posted_whole_with_its_token_to_its_path() {
    let (port, heard) = server(TAKEN, None).await;
    let url = format!("http://127.0.0.1:{port}/hook/s3cret?x=1");
    let receiver = receiver(&json!({ "webhook": { "url": url, "token": "t0ken" } }));
    assert_eq!(try_to(&receiver).await, Ok(()));
    let text = text(&heard);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /hook/s3cret?x=1 HTTP/1.1"));
    let headers: Vec<String> = lines.map(str::to_lowercase).collect();
    for wanted in [
        &format!("host: 127.0.0.1:{port}"),
        "authorization: bearer t0ken",
        "content-type: application/json",
        &format!("content-length: {}", body.len()),
    ] {
        assert!(headers.iter().any(|it| it == wanted), "{wanted}: {head}");
    }
    let sent: Message = serde_json::from_str(body).unwrap();
    assert_eq!(sent, super::message());
}

#[tokio::test]
async fn tls_is_with_whom_the_certificate_names_and_nobody_else() {
    let own = certificate("localhost");
    let (port, heard) = server(TAKEN, Some(&own)).await;
    let to = |ca: Option<&String>| {
        receiver(
            &json!({ "webhook": { "url": format!("https://localhost:{port}/s3cret"), "ca": ca } }),
        )
    };
    assert_eq!(try_to(&to(Some(&own.0))).await, Ok(()));
    assert!(text(&heard).starts_with("POST /s3cret HTTP/1.1"));
    heard.lock().unwrap().clear();
    let stranger = certificate("localhost");
    let failure = try_to(&to(Some(&stranger.0))).await.unwrap_err();
    assert!(
        failure
            .0
            .starts_with(&format!("https://localhost:{port}: ")),
        "{failure:?}"
    );
    let other_name = certificate("example.org");
    let (port, other_heard) = server(TAKEN, Some(&other_name)).await;
    let url = format!("https://localhost:{port}/");
    let other = receiver(&json!({ "webhook": { "url": url, "ca": other_name.0 } }));
    assert!(try_to(&other).await.unwrap_err().0.contains("certificate"));
    // The system does not believe it either, or believes nobody.
    assert!(try_to(&to(None)).await.is_err());
    assert!(text(&heard).is_empty() && text(&other_heard).is_empty());
}

#[tokio::test]
async fn what_is_not_taken_is_said_without_the_path_and_without_the_answer() {
    const REFUSED: &str = "HTTP/1.1 403 Forbidden\r\ncontent-length: 9\r\n\r\ninner s3c";
    const MOVED: &str =
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/s3cret\r\ncontent-length: 0\r\n\r\n";
    const NO_HTTP: &str = "220 mx ESMTP\r\n";
    for (answer, says) in [
        (REFUSED, "answers 403: Forbidden"),
        (MOVED, "answers 302: redirects are not followed"),
        (NO_HTTP, ": invalid HTTP"),
        ("", ": connection closed"),
    ] {
        let (port, _) = server(answer, None).await;
        let url = format!("http://127.0.0.1:{port}/s3cret");
        let failure = try_to(&receiver(&json!({ "webhook": { "url": url } })))
            .await
            .unwrap_err();
        assert!(failure.0.contains(says), "{failure:?}");
        assert!(!failure.0.contains("s3c"), "{failure:?}");
    }
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}/s3cret");
    let failure = try_to(&receiver(&json!({ "webhook": { "url": url } })))
        .await
        .unwrap_err();
    assert!(
        failure.0.contains("refused") && !failure.0.contains("s3c"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn addresses_that_only_a_link_or_a_cloud_has_are_not_connected_to() {
    for host in [
        "169.254.169.254",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "[ff02::1]",
    ] {
        let url = format!("http://{host}/latest/meta-data");
        let failure = try_to(&receiver(&json!({ "webhook": { "url": url } })))
            .await
            .unwrap_err();
        assert!(
            failure.0.contains("is not connected to"),
            "{host}: {failure:?}"
        );
    }
    for good in [
        "127.0.0.1",
        "10.0.0.1",
        "192.0.2.1",
        "::1",
        "fd12::1",
        "2001:db8::1",
    ] {
        assert_eq!(
            alerts::refused_address(good.parse().unwrap()),
            None,
            "{good}"
        );
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let receiver = receiver(&json!({ "webhook": { "url": url } }));
    let alerts::Channel::Webhook(to) = &receiver.channel else {
        panic!("a webhook");
    };
    let message = super::message();
    let most = std::time::Duration::from_secs(1);
    let failure = crate::within(most, crate::webhook::post(to, &message)).await;
    assert_eq!(failure.unwrap_err().0, "it took longer than 1 s");
}
