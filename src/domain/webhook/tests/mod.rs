mod events;
mod proofs;
