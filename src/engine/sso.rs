//! Sign-in at an identity provider: the code flow of its standard (OIDC) with PKCE and a nonce. Who
//! signs in is told by the provider's signed token and by nothing that the browser brings.

mod http;
mod told;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreClientAuthMethod, CoreErrorResponseType,
    CoreGenderClaim, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm,
    CoreProviderMetadata, CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse,
    CoreTokenType,
};
use openidconnect::{
    AccessTokenHash, AuthType, AuthorizationCode, ClaimsVerificationError, Client, ClientId, ClientSecret,
    CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, IdTokenFields,
    IssuerUrl, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    RequestTokenError, Scope, SignatureVerificationError, StandardErrorResponse, StandardTokenResponse,
    TokenResponse as _, UserInfoClaims, UserInfoError,
};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};
use url::Url;

use crate::config::{Config, Oidc};
use crate::domain::ambient::Ambient;
use crate::domain::errors::with_causes;
use crate::domain::identity::Identity;
use crate::domain::time::Timestamp;
use http::{Http, HttpError};
use told::{Others, Told};

/// Where the provider sends the browser back to.
pub const BACK: &str = "/login/oidc/back";
/// What the provider says of itself, its keys included, is asked for anew after this.
const KEPT: Duration = Duration::from_hours(1);
/// No more often than this, whatever key a token names.
const ASKED_AT_MOST: Duration = Duration::from_mins(1);
/// After it could not be asked it is left alone for this long, so that those who want to sign in do not
/// wait for each other's failures.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// How far the provider's clock may be behind ours.
const SKEW: Duration = Duration::from_mins(1);

/// How tokens may be signed: with a key that the provider alone holds.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 10] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EcdsaP521Sha512,
    CoreJwsSigningAlgorithm::EdDsa,
];

type Fields = IdTokenFields<
    Others,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type Answer = StandardTokenResponse<Fields, CoreTokenType>;
type Party = Client<
    Others,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Answer,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Why nobody was signed in. The texts are for the log and the audit.
#[derive(Debug, thiserror::Error)]
pub enum SsoError {
    /// It gave no answer, or none that a provider gives.
    #[error("the identity provider cannot be asked: {0}")]
    Unreachable(String),
    /// It took no part in this sign-in: the code is used up or made up, or it knows us by another secret.
    #[error("the identity provider refused: {0}")]
    Refused(String),
    /// What it handed over proves nothing.
    #[error("what the identity provider handed over does not hold: {0}")]
    Invalid(String),
}

/// A sign-in under way, as the browser's session keeps it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Begun {
    /// Comes back with the browser: a sign-in ends where it began.
    pub state: String,
    nonce: String,
    verifier: String,
    at: i64,
    again: bool,
}

/// A provider, and what it said of itself. Cheap to clone.
#[derive(Clone)]
pub struct Sso(Arc<Inner>);

struct Inner {
    config: Arc<Config>,
    ambient: Ambient,
    /// Made when it is needed first: most desks need none.
    http: OnceCell<Http>,
    said: Mutex<Said>,
}

/// What the provider said of itself, and when; and when it last could not be asked, and why.
#[derive(Default)]
struct Said {
    found: Option<(Timestamp, CoreProviderMetadata)>,
    failed: Option<(Timestamp, String)>,
}

impl Sso {
    /// The provider of a configuration that may have one. It is not asked anything yet.
    pub fn new(config: Arc<Config>, ambient: Ambient) -> Self {
        Self(Arc::new(Inner { config, ambient, http: OnceCell::new(), said: Mutex::default() }))
    }

    /// What the file says of it; absent when people sign in here only.
    pub fn oidc(&self) -> Option<&Oidc> {
        self.0.config.auth.oidc.as_ref()
    }

    /// Begins a sign-in: where to send the browser, and what to keep until it comes back. `again` has
    /// the provider ask for a password, or whatever it asks for, although it knows who sits there.
    pub async fn begin(&self, oidc: &Oidc, again: bool) -> Result<(Url, Begun), SsoError> {
        let http = self.http().await?;
        let party = self.party(http, oidc, self.said(http, oidc, KEPT).await?)?;
        let secret = || URL_SAFE_NO_PAD.encode(self.0.ambient.secret());
        let begun = Begun {
            state: secret(),
            nonce: secret(),
            verifier: secret(),
            at: self.0.ambient.now().as_micros(),
            again,
        };
        let verifier = PkceCodeVerifier::new(begun.verifier.clone());
        let (state, nonce) = (CsrfToken::new(begun.state.clone()), Nonce::new(begun.nonce.clone()));
        let mut request = party
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, || state, || nonce)
            .add_scopes(oidc.scopes.iter().cloned().map(Scope::new))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        // Its own sign-in is to be no older than ours may become, and with this it has to say how old it is.
        request = if again {
            request.add_prompt(CoreAuthPrompt::Login).set_max_age(Duration::ZERO)
        } else {
            request.set_max_age(self.0.config.auth.longest)
        };
        Ok((request.url().0, begun))
    }

    /// Ends it: hands the code in, and checks what comes for it.
    pub async fn end(&self, oidc: &Oidc, begun: Begun, code: String) -> Result<Identity, SsoError> {
        let http = self.http().await?;
        let mut party = self.party(http, oidc, self.said(http, oidc, KEPT).await?)?;
        let answer = party
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|_| SsoError::Unreachable("it names no address for tokens".to_owned()))?
            .set_pkce_verifier(PkceCodeVerifier::new(begun.verifier.clone()))
            .request_async(http)
            .await
            .map_err(refusal)?;
        let told = match self.verified(&party, &answer, &begun) {
            // It may have new keys since it was last asked for them.
            Err(ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey,
            )) => {
                party = self.party(http, oidc, self.said(http, oidc, ASKED_AT_MOST).await?)?;
                self.verified(&party, &answer, &begun)
            }
            told => told,
        };
        let told = told.map_err(|error| SsoError::Invalid(with_causes(&error)))?;
        let asked_at = asked_at(&told);
        if begun.again {
            asked_again(asked_at, &begun)?;
        }
        let told = self.more(&party, http, &answer, told).await?;
        Ok(Identity {
            issuer: oidc.issuer.clone(),
            subject: told.subject.clone(),
            name: told.name(),
            role: oidc.role_of(&told.all, &self.0.config.auth.roles).map(str::to_owned),
            asked_at,
        })
    }

    /// What the provider says of itself, from no longer ago than this.
    async fn said(
        &self,
        http: &Http,
        oidc: &Oidc,
        newest: Duration,
    ) -> Result<CoreProviderMetadata, SsoError> {
        let now = self.0.ambient.now();
        let mut said = self.0.said.lock().await;
        if let Some((_, found)) = said.found.as_ref().filter(|(at, _)| now.since(*at) < newest) {
            return Ok(found.clone());
        }
        if let Some((_, why)) = said.failed.as_ref().filter(|(at, _)| now.since(*at) < LEFT_ALONE) {
            return Err(SsoError::Unreachable(why.clone()));
        }
        let issuer = IssuerUrl::new(oidc.issuer.clone())
            .map_err(|error| SsoError::Unreachable(with_causes(&error)))?;
        let found =
            CoreProviderMetadata::discover_async(issuer, http).await.map_err(|error| with_causes(&error));
        match found {
            Ok(found) => {
                *said = Said { found: Some((now, found.clone())), failed: None };
                Ok(found)
            }
            Err(why) => {
                said.failed = Some((self.0.ambient.now(), why.clone()));
                Err(SsoError::Unreachable(why))
            }
        }
    }

    async fn http(&self) -> Result<&Http, SsoError> {
        let allow_private = self.0.config.server.allow_private_destinations;
        let made = self.0.http.get_or_try_init(async || Http::new(allow_private)).await;
        made.map_err(|error| SsoError::Unreachable(with_causes(&error)))
    }

    fn party(&self, http: &Http, oidc: &Oidc, said: CoreProviderMetadata) -> Result<Party, SsoError> {
        let back = self.0.config.server.public_url.as_str().trim_end_matches('/').to_owned() + BACK;
        let back = RedirectUrl::new(back).map_err(|error| SsoError::Unreachable(with_causes(&error)))?;
        http.permits(said.authorization_endpoint().url())
            .map_err(|error| SsoError::Unreachable(with_causes(&error)))?;
        let basic = said
            .token_endpoint_auth_methods_supported()
            .is_none_or(|ways| ways.contains(&CoreClientAuthMethod::ClientSecretBasic));
        let secret =
            oidc.client_secret.as_ref().map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
        let party = Party::from_provider_metadata(said, ClientId::new(oidc.client_id.clone()), secret);
        let way = if basic { AuthType::BasicAuth } else { AuthType::RequestBody };
        Ok(party.set_redirect_uri(back).set_auth_type(way))
    }

    /// What the token says, once it is proved: its signature, issuer, audience, end and nonce.
    fn verified(
        &self,
        party: &Party,
        answer: &Answer,
        begun: &Begun,
    ) -> Result<Told, ClaimsVerificationError> {
        let other = |text: &str| ClaimsVerificationError::Other(text.to_owned());
        let token = answer.id_token().ok_or_else(|| other("there is no ID token"))?;
        let now = SystemTime::from(self.0.ambient.now().utc());
        let verifier = party.id_token_verifier().set_allowed_algs(ALGORITHMS).set_time_fn(move || now.into());
        let claims = token.claims(&verifier, &Nonce::new(begun.nonce.clone()))?;
        if let Some(wanted) = claims.access_token_hash() {
            let (algorithm, key) = (token.signing_alg(), token.signing_key(&verifier));
            let (algorithm, key) = (
                algorithm.map_err(ClaimsVerificationError::SignatureVerification)?,
                key.map_err(ClaimsVerificationError::SignatureVerification)?,
            );
            let found = AccessTokenHash::from_token(answer.access_token(), algorithm, key)
                .map_err(|error| other(&error.to_string()))?;
            if found != *wanted {
                return Err(other("the access token is another one's"));
            }
        }
        Told::of(claims.subject().as_str(), claims).map_err(|error| other(&error.to_string()))
    }

    /// With what the provider tells besides the token; where both say something, the token counts.
    async fn more(&self, party: &Party, http: &Http, answer: &Answer, told: Told) -> Result<Told, SsoError> {
        let subject = openidconnect::SubjectIdentifier::new(told.subject.clone());
        let Ok(request) = party.user_info(answer.access_token().clone(), Some(subject)) else {
            return Ok(told);
        };
        let claims: UserInfoClaims<Others, CoreGenderClaim> =
            request.request_async(http).await.map_err(|error| match error {
                UserInfoError::Request(error) => SsoError::Unreachable(with_causes(&error)),
                error => SsoError::Invalid(with_causes(&error)),
            })?;
        told.with(claims).map_err(|error| SsoError::Invalid(error.to_string()))
    }
}

/// When the provider last asked them, by its token.
fn asked_at(told: &Told) -> Option<Timestamp> {
    let seconds = told.all.get("auth_time").and_then(Value::as_i64)?;
    Some(Timestamp::from_micros(seconds.saturating_mul(1_000_000)))
}

/// That the provider asked them just now, and did not take an earlier sign-in's word.
fn asked_again(asked: Option<Timestamp>, begun: &Begun) -> Result<(), SsoError> {
    let earliest = Timestamp::from_micros(begun.at).minus(SKEW);
    match asked {
        Some(asked) if asked >= earliest => Ok(()),
        Some(_) => Err(SsoError::Invalid("it did not ask them to sign in again".to_owned())),
        None => Err(SsoError::Invalid("it does not say when they signed in".to_owned())),
    }
}

type CodeError = RequestTokenError<HttpError, StandardErrorResponse<CoreErrorResponseType>>;

fn refusal(error: CodeError) -> SsoError {
    match error {
        RequestTokenError::ServerResponse(said) => SsoError::Refused(said.to_string()),
        RequestTokenError::Request(error) => SsoError::Unreachable(with_causes(&error)),
        RequestTokenError::Parse(error, _) => SsoError::Invalid(error.to_string()),
        RequestTokenError::Other(text) => SsoError::Invalid(text),
    }
}
