-- Privileges, and what an upgrade brings up to date. Everyone may write with tokens; no one else may change a fence downwards or a
-- policy. Hand out more one by one: GRANT EXECUTE ON PROCEDURE pawl.emergency TO oncall.

CALL pawl._create_fold();
GRANT EXECUTE ON PROCEDURE pawl.use TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.use_op TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.use_all TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.admit TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.admit_op TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.begin TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.finish TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.abandon TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.advance TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.check TO PUBLIC;
GRANT EXECUTE ON FUNCTION pawl.fence TO PUBLIC;
GRANT EXECUTE ON FUNCTION pawl.version TO PUBLIC;
GRANT EXECUTE ON FUNCTION pawl.contract TO PUBLIC;
CALL pawl.repair();
