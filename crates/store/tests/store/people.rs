//! Who there is in an account, and who has left.

use slipway_model::id::{AccountId, PrincipalId};
use slipway_store::Page;
use slipway_store::record::{PersonRecord, Removal, TokenRecord};

use crate::store;

fn acme() -> AccountId {
    AccountId::new("acme")
}

fn removed(person: PersonRecord) -> PersonRecord {
    PersonRecord {
        removed: Some(Removal {
            at_ms: 7,
            by: PrincipalId::new("bob"),
        }),
        ..person
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_is_met_once_and_one_who_was_removed_stays_so() {
    let store = store();
    let ann = PrincipalId::new("ann");
    assert_eq!(store.find_person(&acme(), &ann).await.expect("read"), None);
    assert!(store.meet_person(&acme(), &ann).await.expect("kept"));
    assert!(!store.meet_person(&acme(), &ann).await.expect("kept"));
    let met = store.find_person(&acme(), &ann).await.expect("read");
    let gone = removed(met.expect("somebody"));
    store.put_person(&gone).await.expect("kept");
    assert!(!store.meet_person(&acme(), &ann).await.expect("kept"));
    let found = store.find_person(&acme(), &ann).await.expect("read");
    assert_eq!(found, Some(gone));
    // Names that no item can have.
    for name in ["", &"x".repeat(2_000)] {
        let nobody = PrincipalId::new(name);
        let found = store.find_person(&acme(), &nobody).await.expect("read");
        assert_eq!(found, None);
        assert!(store.meet_person(&acme(), &nobody).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn people_are_listed_by_account_and_in_pages() {
    let store = store();
    // An account whose name reaches for the key of another.
    for (account, who) in [
        ("acme", "zoe"),
        ("acme", "ann"),
        ("acme", "a/b#c"),
        ("acme#x", "eve"),
        ("other", "sam"),
    ] {
        let (account, who) = (AccountId::new(account), PrincipalId::new(who));
        store.meet_person(&account, &who).await.expect("kept");
    }
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = Page { limit: 2, after };
        let listing = store.list_people(&acme(), page).await.expect("a list");
        assert!(listing.items.len() <= 2);
        names.extend(
            listing
                .items
                .into_iter()
                .map(|one| one.principal.to_string()),
        );
        after = listing.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, ["a/b#c", "ann", "zoe"]);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_one_who_was_removed_is_not_valid() {
    let store = store();
    let token = TokenRecord {
        account: acme(),
        principal: PrincipalId::new("ann"),
        id: "t".to_owned(),
        name: "laptop".to_owned(),
        permissions: vec!["admin".to_owned()],
        valid_from_ms: 0,
        valid_to_ms: 0,
    };
    let text = "pat.acme.t.secret";
    store.put_token(text, &token).await.expect("stored");
    let valid = store.valid_token(text, 1).await.expect("read");
    let valid = valid.expect("a token");
    assert_eq!((valid.token, valid.person), (token, None));
    let ann = PrincipalId::new("ann");
    store.meet_person(&acme(), &ann).await.expect("kept");
    let valid = store.valid_token(text, 1).await.expect("read");
    let person = valid.and_then(|valid| valid.person).expect("somebody");
    store
        .put_person(&removed(person.clone()))
        .await
        .expect("kept");
    assert_eq!(store.valid_token(text, 1).await.expect("read"), None);
    store.put_person(&person).await.expect("kept");
    assert!(store.valid_token(text, 1).await.expect("read").is_some());
}
