//! Steps of paths: the nodes of an axis that pass a test, nearest first.

use roxmltree::Node;

use super::item::Item;
use super::parse::{Axis, Test};
use crate::error::Reason;
use crate::limits::Meter;

/// The items on an axis that pass a test, in the order of the axis.
pub(super) fn along<'a, 'i>(
    item: Item<'a, 'i>,
    axis: Axis,
    test: &Test,
    meter: &mut Meter<'_>,
) -> Result<Vec<Item<'a, 'i>>, Reason> {
    let mut out = Vec::new();
    let node = item.node();
    let attribute = matches!(item, Item::Attribute(..));
    if matches!(axis, Axis::Following | Axis::Preceding) {
        meter.spend(node.document().descendants().count())?;
    }
    let mut take = |nodes: &mut dyn Iterator<Item = Node<'a, 'i>>| {
        for node in nodes {
            meter.spend(1)?;
            let item = Item::Node(node);
            if passes(&item, test) {
                out.push(item);
            }
        }
        Ok(())
    };
    match axis {
        Axis::SelfOnly | Axis::AncestorOrSelf | Axis::DescendantOrSelf if attribute => {
            if passes(&item, test) {
                out.push(item);
            }
            if axis == Axis::AncestorOrSelf {
                out.extend(along(Item::Node(node), axis, test, meter)?);
            }
            return Ok(out);
        }
        Axis::Parent if attribute => take(&mut std::iter::once(node))?,
        Axis::Ancestor if attribute => take(&mut node.ancestors())?,
        _ if attribute => {}
        Axis::SelfOnly => take(&mut std::iter::once(node))?,
        Axis::Child => take(&mut node.children())?,
        Axis::Descendant => take(&mut node.descendants().skip(1))?,
        Axis::DescendantOrSelf => take(&mut node.descendants())?,
        Axis::Parent => take(&mut node.parent().into_iter())?,
        Axis::Ancestor => take(&mut node.ancestors().skip(1))?,
        Axis::AncestorOrSelf => take(&mut node.ancestors())?,
        Axis::FollowingSibling => take(&mut node.next_siblings().skip(1))?,
        Axis::PrecedingSibling => take(&mut node.prev_siblings().skip(1))?,
        Axis::Following => {
            let own = node
                .descendants()
                .next_back()
                .unwrap_or(node)
                .id()
                .get_usize();
            let all = node.document().descendants();
            take(&mut all.filter(|other| other.id().get_usize() > own))?;
        }
        Axis::Preceding => {
            let above: Vec<_> = node.ancestors().map(|node| node.id()).collect();
            let own = node.id().get_usize();
            let all = node.document().descendants();
            let mut before: Vec<_> = all
                .take_while(|other| other.id().get_usize() < own)
                .collect();
            before.retain(|other| !above.contains(&other.id()));
            before.reverse();
            take(&mut before.into_iter())?;
        }
        Axis::Attribute => {
            for (index, attribute) in node.attributes().enumerate() {
                meter.spend(1)?;
                let item = Item::Attribute(node, index, attribute);
                if passes(&item, test) {
                    out.push(item);
                }
            }
        }
    }
    Ok(out)
}

fn passes(item: &Item<'_, '_>, test: &Test) -> bool {
    let named = match item {
        Item::Attribute(..) => true,
        Item::Node(node) => node.is_element(),
    };
    match (test, item) {
        (Test::Node, _) => true,
        (Test::Any, _) => named,
        (Test::Name(prefix, local), _) => {
            let space = match prefix {
                None => true,
                Some(prefix) if prefix == "xml" => item.namespace() == Some(roxmltree::NS_XML_URI),
                Some(prefix) => {
                    let meant = item.node().lookup_namespace_uri(Some(prefix));
                    meant.is_some() && meant == item.namespace()
                }
            };
            named && space && (local == "*" || item.local_name() == local)
        }
        (_, Item::Attribute(..)) => false,
        (Test::Text, Item::Node(node)) => node.is_text(),
        (Test::Comment, Item::Node(node)) => node.is_comment(),
        (Test::Instruction, Item::Node(node)) => node.is_pi(),
    }
}
