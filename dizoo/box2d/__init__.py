"""Games with Box2D physics. Need the extra `box2d`."""
