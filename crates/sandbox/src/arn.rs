//! Amazon Resource Names in the long format.

/// Parts of an ARN: `arn:aws:<service>:<region>:<account>:<resource>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arn<'a> {
    pub(crate) service: &'a str,
    pub(crate) region: &'a str,
    pub(crate) account: &'a str,
    pub(crate) resource: &'a str,
}

impl<'a> Arn<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(6, ':');
        if parts.next() != Some("arn") {
            return None;
        }
        let _partition = parts.next()?;
        Some(Self {
            service: parts.next()?,
            region: parts.next()?,
            account: parts.next()?,
            resource: parts.next().filter(|resource| !resource.is_empty())?,
        })
    }

    /// What follows `<kind>/` in the resource.
    pub(crate) fn named(self, kind: &str) -> Option<&'a str> {
        self.resource.strip_prefix(kind)?.strip_prefix('/')
    }
}

/// The last part of a short name or of an ARN: `web` of `arn:…:service/prod/web`.
pub(crate) fn last_part(name_or_arn: &str) -> &str {
    if Arn::parse(name_or_arn).is_some() {
        name_or_arn.rsplit('/').next().unwrap_or(name_or_arn)
    } else {
        name_or_arn
    }
}
