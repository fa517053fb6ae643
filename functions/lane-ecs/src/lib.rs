//! The function of ECS lanes.
