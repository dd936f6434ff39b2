//! A desk on an ordinary morning, and all its pages. Each test of pages goes through this list, and
//! a page that the list lacks fails one.

use std::collections::BTreeSet;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::accept::Submission;
use dead_letter_office::engine::actions::{self, Request, Resolve, resolve};
use dead_letter_office::engine::destinations;
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::support::app::person;
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

/// How texts from outside read: `text(what, most)` is what stands for `what`, at most that many
/// characters of it.
pub(super) type Texts = fn(&str, usize) -> String;

/// What people and programs usually write.
pub(super) fn plain(what: &str, _: usize) -> String {
    what.to_owned()
}

/// Downloads, streams and the like: what is read by something else than eyes.
const NO_PAGES: &[&str] = &["/healthz", "/readyz", "/static/{name}"];

impl Scene {
    pub(super) async fn start(text: Texts) -> Self {
        let more = format!(
            r#"
[operations.order]
owner = {owner}
runbook = "https://wiki.example.com/orders?q=%3Cscript%3E"
severity = "critical"
search = {{ customer = "/customer_id", order = "/order_id" }}
mask = ["/email"]
[[operations.order.steps]]
name = {step}
destination = "plain"
method = "POST"
path = "/orders"
effect = {effect}
reference = "/id"
"#,
            owner = json!(text("Order desk", 60)),
            step = json!(text("book order", 60)),
            effect = json!(text("An order in the warehouse", 200)),
        );
        let served = Served::configured(&more).await;
        let boss = text("anna.k", 50);
        served.add(&boss, Role::Admin).await;
        served.add(&text("ben.o", 60), Role::Operator).await;
        served.add(&text("gone", 60), Role::Viewer).await;
        let by = By { actor: &Actor::Cli { user: text("root", 30) }, origin: "cli" };
        let (db, ambient) = (served.engine.db(), served.engine.ambient());
        accounts::disable(db, ambient, &text("gone", 60), &by).await.unwrap();
        let link = accounts::make_link(db, ambient, Some(&text("ben.o", 60)), &by).await.unwrap();
        let stage = Stage { served: &served, text };

        let (done, answered) = stage.replayed("order-10440").await;
        let (_, recorded) = stage.recorded("order-10441").await;
        let refusal =
            Behaviour::error(422, &text("unknown_customer", 900), &text("There is no customer C-7", 900));
        let (_, refused) = stage.fail("keyed", "order-10443", refusal.clone()).await;
        let (doubt, doubtful) =
            stage.fail("plain", "order-10444", Behaviour::CloseAfterRead { effect: true }).await;
        let (_, askable) = stage.fail("lookup", "order-10445", refusal.clone()).await;
        let (_, critical) = stage.fail_at("order", "/plain", "order-10446", refusal).await;
        stage.pause("lookup").await;

        let page = |name, route, path: String| Page { name, route, path };
        let letter = "/dead-letters/{id}";
        let doors = vec![
            page("login", "/login", "/login".to_owned()),
            page("setup", "/setup/{token}", format!("/setup/{link}")),
            page("nothing", "/nothing/here", "/nothing/here".to_owned()),
        ];
        let search = url::form_urlencoded::byte_serialize(text("C-7", 200).as_bytes()).collect::<String>();
        let pages = vec![
            page("triage", "/", "/".to_owned()),
            page("dead-letters", "/dead-letters", "/dead-letters".to_owned()),
            page(
                "dead-letters-filtered",
                "/dead-letters",
                format!("/dead-letters?status=any&search={search}&type=plain&assignee={search}"),
            ),
            page("dead-letter", letter, format!("/dead-letters/{doubtful}")),
            page("dead-letter-askable", letter, format!("/dead-letters/{askable}")),
            page("dead-letter-critical", letter, format!("/dead-letters/{critical}")),
            page("dead-letter-replayed", letter, format!("/dead-letters/{answered}")),
            page("dead-letter-recorded", letter, format!("/dead-letters/{recorded}")),
            page("replay", "/dead-letters/{id}/replay", format!("/dead-letters/{refused}/replay")),
            page("replay-blocked", "/dead-letters/{id}/replay", format!("/dead-letters/{doubtful}/replay")),
            page(
                "resolve",
                "/dead-letters/{id}/resolve",
                format!("/dead-letters/{doubtful}/resolve?resolution=completed_at_destination"),
            ),
            page("override", "/dead-letters/{id}/override", format!("/dead-letters/{doubtful}/override")),
            page("destinations", "/destinations", "/destinations".to_owned()),
            page("status", "/status", "/status".to_owned()),
            page("operations", "/operations", "/operations".to_owned()),
            page("operations-found", "/operations", format!("/operations?search={search}")),
            page("operations-nothing", "/operations", "/operations?search=nothing-like-it".to_owned()),
            page("operation", "/operations/{id}", format!("/operations/{done}")),
            page("operation-doubtful", "/operations/{id}", format!("/operations/{doubt}")),
            page("audit", "/audit", "/audit".to_owned()),
            page("people", "/people", "/people".to_owned()),
            page("account", "/account", "/account".to_owned()),
        ];
        Self { served, doors, pages, boss }
    }

    pub(super) fn url(&self, page: &Page) -> String {
        format!("{}{}", self.served.url, page.path)
    }

    /// As the administrator, whose pages have everything.
    pub(super) async fn sign_in(&self, browser: &Browser) {
        browser.goto(&self.served.url).await;
        super::desk::sign_in(browser, &self.boss).await;
    }
}

/// What happens before anybody looks.
struct Stage<'s> {
    served: &'s Served,
    text: Texts,
}

impl Stage<'_> {
    async fn fail(&self, kind: &str, key: &str, behaviour: Behaviour) -> (Uuid, Uuid) {
        self.fail_at(kind, &format!("/{kind}"), key, behaviour).await
    }

    async fn fail_at(&self, kind: &str, path: &str, key: &str, behaviour: Behaviour) -> (Uuid, Uuid) {
        self.served.destination.script(path, [behaviour]);
        let operation = self.served.submit(self.submission(kind, key)).await;
        let letter = self.served.wait_for(operation, |thread| Some(thread.live_letter()?.id)).await;
        (operation, letter)
    }

    fn submission(&self, kind: &str, key: &str) -> Submission {
        let text = self.text;
        let payload = json!({
            "order_id": text(key, 500),
            "customer_id": text("C-7", 200),
            "email": text("anna@example.com", 300),
            "amount": 1250,
            text("note", 80): [text("Leave it at the door", 3000)],
        });
        Submission {
            kind: kind.to_owned(),
            payload: RawValue::from_string(payload.to_string()).unwrap(),
            // The end tells keys apart, whatever stands before it.
            key: Some(format!("{}{key}", text("", 200))),
            correlation_id: Some(text("corr-7", 255)),
            source: Some(text("shop", 255)),
            by: "token:shop".to_owned(),
        }
    }

    /// Refused, replayed and confirmed.
    async fn replayed(&self, key: &str) -> (Uuid, Uuid) {
        let text = self.text;
        let (operation, letter) = self.fail("keyed", key, Behaviour::status(422)).await;
        let headers = vec![("content-type".into(), "application/json".into())];
        let body = json!({ "id": text("TCK-99", 180) }).to_string();
        self.served.destination.script("/keyed", [Behaviour::Status { code: 201, headers, body }]);
        let (actor, reason) =
            (person(&text("ben.o", 60), Role::Operator), text("The data is right there now", 900));
        actions::replay(self.served.engine.gate(), operation, &self.request(&actor, "replay", &reason))
            .await
            .unwrap();
        let done = |state| matches!(state, OperationState::Completed).then_some(());
        self.served.wait_for(operation, |thread| done(thread.operation.state())).await;
        (operation, letter)
    }

    /// In doubt, looked up by a person and closed.
    async fn recorded(&self, key: &str) -> (Uuid, Uuid) {
        let text = self.text;
        let (operation, letter) = self.fail("plain", key, Behaviour::CloseAfterRead { effect: true }).await;
        let (actor, reason) = (person(&text("ben.o", 60), Role::Operator), text("Found by hand", 900));
        let how =
            Resolve { resolution: Resolution::CompletedAtDestination, reference: Some(text("TCK-98", 180)) };
        resolve(self.served.engine.gate(), letter, &how, &self.request(&actor, "resolve", &reason))
            .await
            .unwrap();
        (operation, letter)
    }

    async fn pause(&self, destination: &str) {
        let text = self.text;
        let (actor, reason) = (person(&text("ben.o", 60), Role::Operator), text("They are at it", 900));
        destinations::pause(self.served.engine.gate(), destination, &self.request(&actor, "pause", &reason))
            .await
            .unwrap();
    }

    fn request<'r>(&self, actor: &'r Actor, action_id: &'r str, reason: &'r str) -> Request<'r> {
        let _ = self;
        Request { actor, action_id, reason, origin: "127.0.0.1" }
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
