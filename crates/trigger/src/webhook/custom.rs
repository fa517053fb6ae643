//! Custom webhooks and event relays: any JSON is an event, of which only its conditions know what it means.

use super::{Heard, Post};
use crate::Provider;

pub(super) fn read(post: &Post) -> Result<Heard, String> {
    // URLs in the payload, such as `callback_url` of Docker Hub, are data: nothing here or later asks them.
    let event = post.event(Provider::Custom, "", String::new());
    Ok(Heard::Event(Box::new(event)))
}
