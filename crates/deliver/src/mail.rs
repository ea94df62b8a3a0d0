//! A mail, by a server that takes mail of this node.

use crate::{CONNECT_TIME_MAX, address, failure, roots};
use alerts::{Encryption, Failure, MailTo, Message};
use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

type Transport = AsyncSmtpTransport<Tokio1Executor>;

/// Sends a message. What the server takes for every address was taken.
pub(crate) async fn send(to: &MailTo, message: &Message) -> Result<(), Failure> {
    let mail = mail(to, message)?;
    let tls = match to.encryption {
        Encryption::None => Tls::None,
        Encryption::Starttls => Tls::Required(parameters(to).await?),
        Encryption::Tls => Tls::Wrapper(parameters(to).await?),
    };
    let at = format!("{}:{}", to.server, to.port());
    let mut last = failure(&at, &"no address");
    // The address that was checked is the one that is connected to.
    for address in address::resolve(&to.server, to.port()).await? {
        let transport = transport(to, &address.ip().to_string(), &tls, message);
        match transport.send(mail.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) => {
                last = failure(&at, &words(&error));
                if error.is_response() {
                    // It was understood, and refused.
                    return Err(last);
                }
            }
        }
    }
    Err(last)
}

/// An error with its causes: lettre's own words are only the first.
fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn transport(to: &MailTo, address: &str, tls: &Tls, message: &Message) -> Transport {
    let mut builder = Transport::builder_dangerous(address)
        .port(to.port())
        .tls(tls.clone())
        .timeout(Some(CONNECT_TIME_MAX))
        .hello_name(ClientId::Domain(message.node.clone()));
    let password = to.password.as_ref().and_then(|it| it.reveal_text());
    if let (Some(user), Some(password)) = (&to.user, password) {
        builder = builder.credentials(Credentials::new(user.clone(), password.to_owned()));
    }
    builder.build()
}

async fn parameters(to: &MailTo) -> Result<TlsParameters, Failure> {
    let mut builder = TlsParameters::builder(to.server.clone());
    builder = builder.certificate_store(CertificateStore::None);
    for root in roots::believed(to.ca.as_deref()).await? {
        // One that cannot be used is left out.
        if let Ok(root) = Certificate::from_der(root.to_vec()) {
            builder = builder.add_root_certificate(root);
        }
    }
    builder
        .build_rustls()
        .map_err(|error| failure("TLS", &words(&error)))
}

fn mail(to: &MailTo, message: &Message) -> Result<lettre::Message, Failure> {
    let mailbox = |address: &str| {
        let parsed = address.parse();
        parsed.map(|address| Mailbox::new(None, address))
    };
    let wrong = |error: lettre::address::AddressError| failure("an address", &error);
    let mut builder = lettre::Message::builder()
        .from(mailbox(&to.from).map_err(wrong)?)
        .subject(message.subject())
        .header(ContentType::TEXT_PLAIN);
    for to in &to.to {
        builder = builder.to(mailbox(to).map_err(wrong)?);
    }
    let mail = builder.body(message.body());
    mail.map_err(|error| failure("the mail", &words(&error)))
}
