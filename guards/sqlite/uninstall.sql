-- Takes the guard's tables out; `pawl guard uninstall sqlite` has dropped the triggers before.
DROP TABLE IF EXISTS pawl_audit;
DROP TABLE IF EXISTS pawl_sighting;
DROP TABLE IF EXISTS pawl_refusal;
DROP TABLE IF EXISTS pawl_count;
DROP TABLE IF EXISTS pawl_done;
DROP TABLE IF EXISTS pawl_fence;
DROP TABLE IF EXISTS pawl_key_form;
DROP TABLE IF EXISTS pawl_protected;
DROP TABLE IF EXISTS pawl_guard;
DROP TABLE IF EXISTS pawl_installation;
