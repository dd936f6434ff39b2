//! How domain values are stored.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Postgres, Sqlite, Type};
use uuid::Uuid;

use crate::domain::actor::Scope;
use crate::domain::attempt::{Cause, Outcome, OverrideMode, RequestState};
use crate::domain::bulk::{BulkAction, BulkState, MemberState};
use crate::domain::classify::Symptom;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use crate::domain::decide::ParkReason;
use crate::domain::key::{DestinationKey, PayloadDigest};
use crate::domain::lookup::{Finding, Task};
use crate::domain::operation::{OperationState, Severity, StepState};
use crate::domain::sign_in::SignInBy;
use crate::domain::time::Timestamp;

stored_as_text!(
    Scope,
    Cause,
    Outcome,
    Symptom,
    Certainty,
    DeadLetterStatus,
    NextAction,
    Resolution,
    ParkReason,
    OperationState,
    Severity,
    StepState,
    Finding,
    Task,
    OverrideMode,
    RequestState,
    BulkAction,
    BulkState,
    MemberState,
    SignInBy,
);

/// Stores a newtype as what it wraps, on both databases.
macro_rules! stored_as {
    ($name:ty, $inner:ty, $into:expr, $from:expr) => {
        stored_as!(@one $name, $inner, $into, $from, Sqlite);
        stored_as!(@one $name, $inner, $into, $from, Postgres);
    };
    (@one $name:ty, $inner:ty, $into:expr, $from:expr, $db:ty) => {
        impl Type<$db> for $name {
            fn type_info() -> <$db as Database>::TypeInfo {
                <$inner as Type<$db>>::type_info()
            }

            fn compatible(ty: &<$db as Database>::TypeInfo) -> bool {
                <$inner as Type<$db>>::compatible(ty)
            }
        }

        impl<'q> Encode<'q, $db> for $name {
            fn encode_by_ref(
                &self,
                buffer: &mut <$db as Database>::ArgumentBuffer,
            ) -> Result<IsNull, BoxDynError> {
                let into: fn(&$name) -> $inner = $into;
                <$inner as Encode<'_, $db>>::encode(into(self), buffer)
            }
        }

        impl<'r> Decode<'r, $db> for $name {
            fn decode(value: <$db as Database>::ValueRef<'r>) -> Result<Self, BoxDynError> {
                let from: fn($inner) -> Result<$name, BoxDynError> = $from;
                from(<$inner as Decode<'r, $db>>::decode(value)?)
            }
        }
    };
}

stored_as!(Timestamp, i64, |t| t.as_micros(), |micros| Ok(Timestamp::from_micros(micros)));
stored_as!(DestinationKey, Uuid, |key| key.0, |id| Ok(DestinationKey(id)));
stored_as!(PayloadDigest, Vec<u8>, |digest| digest.0.to_vec(), |bytes| {
    Ok(PayloadDigest(<[u8; 32]>::try_from(bytes).map_err(|_| "a digest has 32 bytes")?))
});
