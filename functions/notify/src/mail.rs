//! `Email`: a mail over SMTP. SES is reached the same way: its SMTP interface takes the name of the region's endpoint
//! as host, and SMTP credentials that SES gives out.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use secrecy::ExposeSecret;
use slipway_engine::error::HandlerError;

use crate::Deps;
use crate::message::Message;
use crate::rule::{Rule, later, refused};

/// Longest wait for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most receivers of one mail.
const MOST_RECEIVERS: usize = 100;

/// How the connection to the server is kept secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// It begins in the clear and must go on encrypted (port 587).
    StartTls,
    /// It is encrypted from the start (port 465).
    Tls,
    /// It is not: for servers on the same machine (port 25).
    None,
}

/// The server that takes mails.
#[derive(Clone, Debug)]
pub struct MailServer {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is kept secret.
    pub security: Security,
    /// Who logs in, if anybody does.
    pub user: Option<String>,
    /// Reference of the secret with the password (`account.smtp_password`).
    pub password: Option<String>,
    /// Who the mails are from.
    pub from: Mailbox,
}

/// The server of mails cannot be told from the environment.
#[derive(Debug, thiserror::Error)]
#[error("{name} is {problem}")]
pub struct MailConfigError {
    name: &'static str,
    problem: String,
}

impl MailServer {
    /// Reads `SLIPWAY_SMTP_*`; `None` where there is no host.
    ///
    /// # Errors
    /// When a variable cannot be understood, or the sender is missing.
    pub fn from_env() -> Result<Option<Self>, MailConfigError> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Option<Self>, MailConfigError> {
        let text = |name| variable(name).filter(|text| !text.trim().is_empty());
        let wrong = |name, problem: String| MailConfigError { name, problem };
        let Some(host) = text("SLIPWAY_SMTP_HOST") else {
            return Ok(None);
        };
        let (security, usual) = match text("SLIPWAY_SMTP_SECURITY").as_deref() {
            None | Some("starttls") => (Security::StartTls, 587),
            Some("tls") => (Security::Tls, 465),
            Some("none") => (Security::None, 25),
            Some(other) => {
                let problem = format!("`{other}`, and must be starttls, tls or none");
                return Err(wrong("SLIPWAY_SMTP_SECURITY", problem));
            }
        };
        let port = match text("SLIPWAY_SMTP_PORT") {
            None => usual,
            Some(port) => port
                .parse()
                .map_err(|_| wrong("SLIPWAY_SMTP_PORT", format!("`{port}`, and no port")))?,
        };
        let name = "SLIPWAY_SMTP_FROM";
        let from =
            text(name).ok_or_else(|| wrong(name, "missing: mails need a sender".to_owned()))?;
        let from = from
            .parse()
            .map_err(|error| wrong(name, format!("no address of a sender ({error})")))?;
        Ok(Some(Self {
            host,
            port,
            security,
            user: text("SLIPWAY_SMTP_USER"),
            password: text("SLIPWAY_SMTP_PASSWORD_SECRET"),
            from,
        }))
    }
}

/// Sends a message to all receivers of a rule, in one mail.
pub(crate) async fn send(
    deps: &Deps,
    rule: &mut Rule<'_>,
    message: &Message,
) -> Result<(), HandlerError> {
    let Some(server) = &deps.mail else {
        return Err(refused(
            "no server for mails is set up; give SLIPWAY_SMTP_HOST and SLIPWAY_SMTP_FROM",
        ));
    };
    let mail = mail(deps, server, rule, message).await?;
    let transport = transport(server, rule).await?;
    match transport.send(mail).await {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = format!("the mail server {} said: {}", server.host, causes(&error));
            Err(match error.is_permanent() {
                true => refused(text),
                false => later(text),
            })
        }
    }
}

async fn mail(
    deps: &Deps,
    server: &MailServer,
    rule: &mut Rule<'_>,
    message: &Message,
) -> Result<lettre::Message, HandlerError> {
    let mut builder = lettre::Message::builder()
        .from(server.from.clone())
        .subject(message.headline.clone())
        .message_id(Some(format!(
            "<{}@{}>",
            message.id,
            server.from.email.domain()
        )))
        .date(deps.runs.clock.now().into())
        .header(content_type(message));
    let mut count = 0;
    for text in rule.texts("recipients").await? {
        let listed = text.expose_secret().split([',', ';', '\n']).map(str::trim);
        for one in listed.filter(|one| !one.is_empty()) {
            let to: Mailbox = one.parse().map_err(|error| {
                refused(format!(
                    "its recipients: `{one:.60}` is no address ({error})"
                ))
            })?;
            builder = builder.to(to);
            count += 1;
        }
    }
    match count {
        0 => return Err(refused("its recipients are none")),
        1..=MOST_RECEIVERS => {}
        _ => {
            let text = format!("its recipients are {count}, and {MOST_RECEIVERS} at most may be");
            return Err(refused(text));
        }
    }
    let mail = builder.body(format!("{}\n", message.text()));
    mail.map_err(|error| refused(format!("the mail cannot be made: {error}")))
}

fn content_type(message: &Message) -> ContentType {
    match &message.custom {
        Some(custom) if custom.kind == "HTML" => ContentType::TEXT_HTML,
        _ => ContentType::TEXT_PLAIN,
    }
}

async fn transport(
    server: &MailServer,
    rule: &mut Rule<'_>,
) -> Result<AsyncSmtpTransport<Tokio1Executor>, HandlerError> {
    type Smtp = AsyncSmtpTransport<Tokio1Executor>;
    let host = server.host.as_str();
    let builder = match server.security {
        Security::StartTls => Smtp::starttls_relay(host),
        Security::Tls => Smtp::relay(host),
        Security::None => Ok(Smtp::builder_dangerous(host)),
    };
    let mut builder = builder
        .map_err(|error| refused(format!("the mail server {host}: {}", causes(&error))))?
        .port(server.port)
        .timeout(Some(PATIENCE));
    if let Some(user) = &server.user {
        let password = match &server.password {
            Some(reference) => rule.secret(reference).await?.expose_secret().to_owned(),
            None => String::new(),
        };
        builder = builder.credentials(Credentials::new(user.clone(), password));
    }
    Ok(builder.build())
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<MailServer>, String> {
        let find = |name: &'static str| {
            let mut all = variables.iter();
            let found = all.find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        MailServer::read(find).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_names_the_server_or_says_what_is_wrong() {
        assert!(read(&[]).expect("none").is_none());
        assert!(read(&[("SLIPWAY_SMTP_HOST", "")]).expect("none").is_none());
        let host = ("SLIPWAY_SMTP_HOST", "mail.example.com");
        let from = ("SLIPWAY_SMTP_FROM", "Slipway <slipway@example.com>");
        let server = read(&[host, from]).expect("a server").expect("a server");
        assert_eq!((server.port, server.security), (587, Security::StartTls));
        let tls = ("SLIPWAY_SMTP_SECURITY", "tls");
        let server = read(&[host, from, tls])
            .expect("a server")
            .expect("a server");
        assert_eq!((server.port, server.security), (465, Security::Tls));
        for (wrong, name) in [
            (vec![host], "SLIPWAY_SMTP_FROM"),
            (
                vec![host, ("SLIPWAY_SMTP_FROM", "nobody")],
                "SLIPWAY_SMTP_FROM",
            ),
            (
                vec![host, from, ("SLIPWAY_SMTP_PORT", "x")],
                "SLIPWAY_SMTP_PORT",
            ),
            (
                vec![host, from, ("SLIPWAY_SMTP_SECURITY", "ssl")],
                "SLIPWAY_SMTP_SECURITY",
            ),
        ] {
            assert!(read(&wrong).expect_err("wrong").starts_with(name));
        }
    }
}
