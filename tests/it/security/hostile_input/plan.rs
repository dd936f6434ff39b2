//! Which strings go where.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use axum::http::Method;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tower::ServiceExt as _;

use super::Sweeper;
use super::places::{Door, Route};
use super::request::{Ask, DECIDING, PROVING, Place, Session};

impl Sweeper {
    /// Every request that a route gets.
    pub(super) async fn plan(&self, route: &Route, session: &Session) -> Vec<Ask> {
        let mut kinds: Vec<Vec<Place>> =
            (0..route.placeholders()).map(|nth| vec![Place::Path(nth)]).collect();
        let (mut free, mut strict) = (Vec::new(), Vec::new());
        for name in &route.query {
            let place = Place::Query(name.clone());
            let passes = self.passes(route, session, name).await;
            if passes { free.push(place) } else { strict.push(place) }
        }
        kinds.extend([free, strict]);
        kinds.push(route.form.iter().map(|(name, _)| Place::Field(name.clone())).collect());
        kinds.extend(route.members.iter().map(|name| vec![Place::Member(name.clone())]));
        if route.method == Method::POST && route.form.is_empty() {
            kinds.push(vec![Place::Body]);
        }
        let together = if route.slow { self.depth.slow } else { self.depth.together };
        let alone = if route.slow { self.depth.slow } else { self.depth.alone };
        let mut asks = Vec::new();
        for kind in kinds.iter().filter(|kind| !kind.is_empty()) {
            let blocks = self.texts.len() - self.strings;
            let start = self.draw(route, kind).random_range(0..blocks);
            for nth in start..start + together.min(blocks) {
                // Each place gets each block, and no two the same one at a time.
                let of = |at: usize| self.strings + (nth + at * 37) % blocks;
                let strings = kind.iter().enumerate().map(|(at, place)| (place.clone(), of(at)));
                asks.push(Ask { signed_in: true, strings: strings.collect() });
            }
        }
        let mut single: Vec<Place> = kinds.into_iter().flatten().collect();
        single.extend(route.members.iter().map(|name| Place::Raw(name.clone())));
        if route.method == Method::POST && route.door == Door::Desk {
            single.push(Place::Field("csrf".to_owned()));
        }
        single.extend(DECIDING.map(Place::Header));
        if route.pattern.starts_with("/hooks") {
            single.extend(PROVING.map(Place::Header));
        }
        let every: Vec<usize> = (0..self.strings).collect();
        for place in single {
            let mut draw = self.draw(route, &place);
            if !draw.random_ratio(1, self.depth.one_of) {
                continue;
            }
            let header = matches!(place, Place::Header(_));
            let count = if header { alone.div_ceil(3) } else { alone };
            for string in every.sample(&mut draw, count) {
                asks.push(Ask { signed_in: true, strings: vec![(place.clone(), *string)] });
            }
            for string in every.sample(&mut draw, count.div_ceil(8)) {
                asks.push(Ask { signed_in: false, strings: vec![(place.clone(), *string)] });
            }
            self.places.lock().expect("no panic").insert(format!("{} {place:?}", route.name()));
        }
        asks
    }

    fn draw(&self, route: &Route, place: &impl Hash) -> StdRng {
        let mut hash = DefaultHasher::new();
        (route.name(), place).hash(&mut hash);
        StdRng::seed_from_u64(hash.finish())
    }

    /// Whether a parameter takes any text.
    async fn passes(&self, route: &Route, session: &Session, name: &str) -> bool {
        let ask = Ask { signed_in: true, strings: Vec::new() };
        let Some(mut asked) = self.request(route, session, &ask) else { return false };
        *asked.uri_mut() = format!("{}?{name}=zzz", route.path).parse().expect("an address");
        let reply = self.router.clone().oneshot(asked).await.expect("a router does not fail");
        reply.status().is_success()
    }
}
