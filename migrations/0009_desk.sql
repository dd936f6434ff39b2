-- In which zone a person reads moments, by its IANA name; absent for UTC.
ALTER TABLE users ADD COLUMN zone TEXT;
