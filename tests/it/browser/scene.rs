//! A desk on a busy morning, and all its pages. Each test of pages goes through this list, and a
//! page that the list lacks fails one.

use std::collections::BTreeSet;
use std::time::Duration;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role, Scope};
use dead_letter_office::store::accounts as rows;
use url::form_urlencoded::byte_serialize;

use super::stage::{Stage, Texts, orders, plain};
use crate::support::browser::Browser;
use crate::support::routes::routes;
use crate::support::served::Served;

/// Everything that can be looked at.
pub(super) struct Scene {
    pub(super) served: Served,
    /// Without a sign-in.
    pub(super) doors: Vec<Page>,
    /// Behind it.
    pub(super) pages: Vec<Page>,
    boss: String,
}

pub(super) struct Page {
    /// For a person who reads which page failed, and for the picture's file name.
    pub(super) name: &'static str,
    /// As the router has it.
    route: &'static str,
    /// Of the server.
    pub(super) path: String,
}

/// What is read by something else than eyes.
/// Neither is where signing in elsewhere leads through.
const NO_PAGES: &[&str] =
    &["/healthz", "/live", "/login/oidc", "/login/oidc/back", "/readyz", "/static/{name}"];

impl Scene {
    pub(super) async fn start(text: Texts) -> Self {
        let served = Served::configured(&orders(text)).await;
        let (boss, hand, gone) = (text("anna.k", 50), text("ben.o", 60), text("gone", 60));
        served.add(&boss, Role::Admin).await;
        served.add(&hand, Role::Approver).await;
        served.add(&gone, Role::Viewer).await;
        let by = By { actor: &Actor::Cli { user: text("root", 30) }, origin: "cli" };
        let (db, ambient) = (served.engine.db(), served.engine.ambient());
        accounts::disable(db, ambient, &gone, &by).await.unwrap();
        let link = accounts::make_link(db, ambient, Some(&hand), &by).await.unwrap();
        for (name, scope, lasts) in [
            (text("shop", 60), Scope::Submit, Some(Duration::from_hours(24 * 90))),
            (text("report", 60), Scope::Read, None),
            (text("old", 60), Scope::Operate, None),
        ] {
            accounts::create_token(db, ambient, &name, scope, lasts, &by).await.unwrap();
        }
        accounts::revoke_token(db, ambient, &text("old", 60), &by).await.unwrap();
        let mut tx = db.read().await.unwrap();
        let row = rows::user_by_name(&mut tx, &boss).await.unwrap().expect("the administrator");
        drop(tx);
        let person = row.id;
        accounts::begin_app(db, ambient, &row).await.unwrap();

        let stage = Stage { served: &served, text, hand };
        let doubt = || Behaviour::CloseAfterRead { effect: true };
        let (done, replayed) = stage.replayed("order-10440").await;
        let recorded = stage.recorded("order-10441").await;
        let corrected = stage.corrected("order-10442").await;
        let (_, refused) = stage.fail("keyed", "order-10443", stage.refusal()).await;
        let (unclear, doubtful) = stage.fail("plain", "order-10444", doubt()).await;
        let (_, askable) = stage.fail("lookup", "order-10445", stage.refusal()).await;
        let (_, critical) = stage.fail_at("order", "/plain", "order-10446", stage.refusal()).await;
        let (_, held) = stage.fail_at("order", "/plain", "order-10447", doubt()).await;
        let (_, asleep) = stage.fail("lookup", "order-10448", stage.refusal()).await;
        let approval = stage.asked_for(held).await;
        let bulk = stage.bulk(&[critical, askable]).await;
        let cause = stage.handed_over(refused).await;
        stage.put_off(asleep).await;
        stage.shared_view().await;
        stage.pause("lookup").await;

        let search: String = byte_serialize(text("C-7", 200).as_bytes()).collect();
        let who: String = byte_serialize(stage.hand.as_bytes()).collect();
        let page = |name, route, path: String| Page { name, route, path };
        let letter = |name, id| page(name, "/dead-letters/{id}", format!("/dead-letters/{id}"));
        let fixed = |name, route: &'static str| page(name, route, route.to_owned());
        let form = |name, route: &'static str, id| page(name, route, route.replace("{id}", &format!("{id}")));
        let doors = vec![
            fixed("login", "/login"),
            // Without a password before it, it leads to the one before.
            fixed("login-second", "/login/second"),
            page("setup", "/setup/{token}", format!("/setup/{link}")),
            fixed("nothing", "/nothing/here"),
        ];
        let pages = vec![
            fixed("triage", "/"),
            page("cause", "/causes/{id}", format!("/causes/{cause}")),
            fixed("dead-letters", "/dead-letters"),
            page(
                "dead-letters-filtered",
                "/dead-letters",
                format!("/dead-letters?status=any&search={search}&type=plain&assignee={who}"),
            ),
            letter("dead-letter", doubtful),
            letter("dead-letter-askable", askable),
            letter("dead-letter-critical", critical),
            letter("dead-letter-handed-over", refused),
            letter("dead-letter-replayed", replayed),
            letter("dead-letter-recorded", recorded),
            letter("dead-letter-corrected", corrected),
            form("replay", "/dead-letters/{id}/replay", refused),
            form("replay-blocked", "/dead-letters/{id}/replay", doubtful),
            form("correct", "/dead-letters/{id}/correct", refused),
            form("correct-closed", "/dead-letters/{id}/correct", doubtful),
            page(
                "resolve",
                "/dead-letters/{id}/resolve",
                format!("/dead-letters/{doubtful}/resolve?resolution=completed_at_destination"),
            ),
            form("override", "/dead-letters/{id}/override", doubtful),
            form("override-asked-for", "/dead-letters/{id}/override", held),
            fixed("approvals", "/approvals"),
            form("approval", "/approvals/{id}", approval),
            fixed("bulk", "/bulk"),
            page("bulk-new", "/bulk/new", format!("/bulk/new?action=replay&all=1&cause={cause}&canary=1")),
            page("bulk-resolve", "/bulk/new", format!("/bulk/new?action=resolve&id={refused}&id={askable}")),
            form("bulk-one", "/bulk/{id}", bulk),
            fixed("destinations", "/destinations"),
            page("destination", "/destinations/{name}", "/destinations/keyed".to_owned()),
            page("destination-paused", "/destinations/{name}", "/destinations/lookup".to_owned()),
            page("type", "/types/{name}", "/types/order".to_owned()),
            fixed("status", "/status"),
            fixed("operations", "/operations"),
            page("operations-found", "/operations", format!("/operations?search={search}")),
            page("operations-nothing", "/operations", "/operations?search=nothing-like-it".to_owned()),
            form("operation", "/operations/{id}", done),
            form("operation-doubtful", "/operations/{id}", unclear),
            fixed("audit", "/audit"),
            fixed("people", "/people"),
            form("person", "/people/{id}", person),
            fixed("tokens", "/tokens"),
            fixed("erase", "/erase"),
            fixed("account", "/account"),
            fixed("account-second-factor", "/account/second-factor"),
            fixed("account-app", "/account/second-factor/app"),
            page("account-confirm", "/confirm", "/confirm?next=%2Faudit".to_owned()),
        ];
        Self { served, doors, pages, boss }
    }

    pub(super) fn url(&self, page: &Page) -> String {
        format!("{}{}", self.served.url, page.path)
    }

    /// The address of the page of this name.
    pub(super) fn at(&self, name: &str) -> String {
        self.url(self.pages.iter().find(|page| page.name == name).expect("a page of this name"))
    }

    /// As the administrator, whose pages have everything.
    pub(super) async fn sign_in(&self, browser: &Browser) {
        browser.goto(&self.served.url).await;
        super::desk::sign_in(browser, &self.boss).await;
    }
}

/// Without a browser: it is about the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_of_the_router_is_in_the_list() {
    let scene = Scene::start(plain).await;
    let pages = scene.doors.iter().chain(&scene.pages).map(|page| page.route.to_owned());
    let mut listed: BTreeSet<String> = pages.collect();
    listed.remove("/nothing/here");
    let read = |path: &String| !path.starts_with("/api/") && !NO_PAGES.contains(&path.as_str());
    let routed = routes().into_iter().filter(|(method, _)| *method == "get").map(|(_, path)| path);
    assert_eq!(listed, routed.filter(read).collect());
    let names: BTreeSet<&str> = scene.doors.iter().chain(&scene.pages).map(|page| page.name).collect();
    assert_eq!(names.len(), scene.doors.len() + scene.pages.len(), "two pictures under one name");
}
